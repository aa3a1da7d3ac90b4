// A page of metrics in Prometheus' text form, read.

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export class Metrics {
  readonly samples: ReadonlyArray<Sample>

  constructor(text: string) {
    this.samples = text.split("\n").flatMap((line) => {
      const match = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line)
      if (match === null || line.startsWith("#")) return []
      const labels: Record<string, string> = {}
      for (const [, key, value] of (match[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
        labels[key ?? ""] = value ?? ""
      }
      return [{ name: match[1] ?? "", labels, value: Number(match[3]) }]
    })
  }

  /** The sum over all series of the name that have these labels; undefined when there is none. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
    const found = this.samples.filter(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value)
    )
    return found.length === 0 ? undefined : found.reduce((total, { value }) => total + value, 0)
  }

  /** As `sum`, 0 where there is no series yet. */
  count(name: string, labels: Readonly<Record<string, string>> = {}): number {
    return this.sum(name, labels) ?? 0
  }
}
