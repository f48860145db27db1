"""Planning simulated and planned for real, side by side, on a large generated table."""
