"""The demonstration lake: real Iceberg tables, each with one planning trouble, and the settings that go with them.

==================================  =================================================================================
Table                               What it shows
==================================  =================================================================================
lake.sales.orders                   Days-partitioned; every load brings late rows of the last three months: 42
                                    manifests, each 78 days wide or more, so that looking up one day opens most of
                                    them. The repair clusters them.
lake.sales.customers                ``bucket(16)``; each of 8 loads writes all buckets, so each manifest covers all.
lake.sales.invoices                 Months and a country: a name, NULL, or the text 'null', which are not the same.
lake.sales.daily_totals             Healthy: four manifests that do not overlap, a sort order, nothing to recommend.
lake.sales.exchange_rates           Unpartitioned: no partition range, no overlap. "Not measured" is not 0.
lake.sales.returns                  Empty: no snapshot yet.
lake.sales.`Order-Items v1.5`       Upper case, dashes, spaces and dots in the names of table and columns;
                                    ``truncate`` and days.
lake.ops.sensor_readings            94 columns, 360 files, aligned manifests: they are heavy with statistics that no
                                    query reads.
lake.ops.tickets                    Merge-on-read (v2): compacting four months left DELETED entries in the current
                                    snapshot (half of a manifest) and dangling delete files, while the deletes of
                                    other months still apply.
lake.ops.sessions                   v3 with deletion vectors in Puffin files.
lake.ops.audit_log                  Retention dropped whole days: one manifest without any live file, one with a
                                    third left.
lake.ops.page_views                 The layout evolved from months to days: four manifests in each of two specs.
lake.ops.uploads                    Very uneven file sizes, for comparing ways to share the work among workers.
lake.broken.missing_manifest        A manifest is gone from the store: the table cannot be measured, and the report
                                    must say why.
==================================  =================================================================================

``build_lake`` in ``planning_health.demo.lake`` writes it with Spark in about a minute on two cores, the same rows each
time. A finished lake is left alone, and a table that is not the demonstration's is never replaced. ``settings.yaml``
beside this file configures everything by default, with example queries for the simulations.
"""
