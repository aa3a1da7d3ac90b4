// The tables of docs/operations.md that are made from the code, so that they cannot say anything else.
import { Registry } from "prom-client"
import { makeEdgeMetrics } from "../src/metrics/EdgeMetrics.ts"

/** What this file makes stands in the page between `<!-- NAME -->` and `<!-- /NAME -->`. */
export type TableName = "metrics"

const PREFIX = "iop_edge_"

/** A row for each metric of the edge's own, by name. */
const metricsTable = (): string => {
  const registry = new Registry()
  makeEdgeMetrics(registry, { nodes: [] }, "0.0.0")
  const rows = registry
    .getMetricsAsArray()
    .filter((metric) => metric.name.startsWith(PREFIX))
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .map((metric) => {
      const labels = labelNamesOf(metric).map((label) => `\`${label}\``)
      return `| \`${metric.name}\` | ${metric.type} | ${labels.join(", ")} | ${metric.help} |`
    })
  return ["| metric | type | labels | meaning |", "| --- | --- | --- | --- |", ...rows].join("\n")
}

/** prom-client keeps them on every metric, and says so for none. */
const labelNamesOf = (metric: object): ReadonlyArray<string> =>
  "labelNames" in metric && Array.isArray(metric.labelNames) ? metric.labelNames.map(String) : []

const tables: Readonly<Record<TableName, () => string>> = { metrics: metricsTable }

/** The page with its tables as the code has them now. Throws when a table has no place in the page. */
export const withTables = (page: string): string => {
  let result = page
  for (const [name, table] of Object.entries(tables)) {
    const [begin, end] = [`<!-- ${name} -->\n`, `<!-- /${name} -->`]
    const [from, to] = [result.indexOf(begin) + begin.length, result.indexOf(end)]
    if (from < begin.length || to < from) throw new Error(`docs/operations.md has no place for ${name}`)
    result = `${result.slice(0, from)}${table()}\n${result.slice(to)}`
  }
  return result
}
