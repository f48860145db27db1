// Inside Airflow's frame: take over its light or dark, and open links to Airflow in the whole window.
// On the page of a run that is under way: look again, and show what has changed.
(() => {
  const { airflow, pages } = document.currentScript.dataset;
  const root = document.documentElement;
  const outer = (() => {
    try {
      return window.parent !== window && window.parent.document;
    } catch {
      return null; // another site's frame
    }
  })();
  const chosen = () => {
    const names = outer ? outer.documentElement.classList : null;
    if (names && names.contains("dark")) return "dark";
    if (names && names.contains("light")) return "light";
    return null;
  };
  const paint = () => {
    const theme = chosen();
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  const lookAgain = async () => {
    const shown = document.getElementById("run");
    const answer = await fetch(location.href).catch(() => null);
    const text = answer && answer.ok ? await answer.text() : "";
    const found = new DOMParser().parseFromString(text, "text/html").getElementById("run");
    if (found && found.innerHTML !== shown.innerHTML) shown.replaceChildren(...found.childNodes);
    if (!found || found.dataset.again) setTimeout(lookAgain, shown.dataset.again * 1000);
  };
  document.addEventListener("DOMContentLoaded", () => {
    const run = document.getElementById("run");
    if (run && run.dataset.again) setTimeout(lookAgain, run.dataset.again * 1000);
  });
  paint();
  if (!outer) return;
  new MutationObserver(paint).observe(outer.documentElement, { attributes: true, attributeFilter: ["class"] });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const inside = link.origin === location.origin && link.pathname.startsWith(pages);
    const toAirflow = link.origin === location.origin && link.pathname.startsWith(airflow);
    if (inside || !toAirflow) return;
    event.preventDefault(); // the frame may not move the window, but a link of the window's own document may
    const own = outer.createElement("a");
    own.href = link.href;
    outer.body.append(own);
    own.click();
    own.remove();
  });
})();
