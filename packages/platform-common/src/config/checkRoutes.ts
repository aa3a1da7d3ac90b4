// Rules about routes: each must lead to something that a node has.

import { type ConfigPath, quote } from "./ConfigProblem.ts"
import { type ConfigTree, isRecord } from "./ConfigTree.ts"
import { nodeName, recordsAt, shownText } from "./checkNodes.ts"
import { suggestion } from "./describeIssue.ts"
import type { Findings } from "./Findings.ts"

interface Place {
  readonly node: ConfigPath
  readonly labels: Record<string, unknown>
  /** What the file says about the adapter's targets; none: the node finds them. */
  readonly targets: ReadonlyArray<string>
}

/** The adapters of all nodes by name. */
const adapterPlaces = (tree: ConfigTree): ReadonlyMap<string, ReadonlyArray<Place>> => {
  const places = new Map<string, Array<Place>>()
  for (const node of recordsAt(tree, ["nodes"])) {
    const labels = isRecord(node.value.labels) ? node.value.labels : {}
    for (const { path, value } of recordsAt(tree, [...node.path, "adapters"])) {
      if (typeof value.name !== "string") continue
      const targets = Array.isArray(value.targets)
        ? value.targets.filter((name) => typeof name === "string")
        : []
      const profiles = recordsAt(tree, [...path, "profiles"]).flatMap((profile) =>
        typeof profile.value.name === "string" ? [profile.value.name] : []
      )
      const known = places.get(value.name)
      const place = {
        node: node.path,
        labels,
        targets: targets.length > 0 ? [...targets, ...profiles] : profiles
      }
      if (known === undefined) places.set(value.name, [place])
      else known.push(place)
    }
  }
  return places
}

/** Unknown adapters, labels that nobody has, targets that nobody lists, models that are routed twice. */
export const checkRoutes = (findings: Findings): void => {
  const { tree } = findings
  const adapters = adapterPlaces(tree)
  const models = new Map<string, ConfigPath>()
  for (const { path, value } of recordsAt(tree, ["routes"])) {
    const modelPath = [...path, "model"]
    const model = shownText(tree, modelPath)
    const route = model === undefined ? "this route" : `the route ${quote(model)}`
    if (typeof value.model === "string" && value.model !== "") {
      const first = models.get(value.model)
      if (first === undefined) models.set(value.model, modelPath)
      else findings.add(modelPath, `${route} exists already${findings.line(first)}; a model has one route`)
    }
    if (typeof value.adapter !== "string" || value.adapter === "") continue
    const places = adapters.get(value.adapter)
    if (places === undefined) {
      const shown = shownText(tree, [...path, "adapter"])
      const known = [...adapters.keys()]
      findings.add(
        [...path, "adapter"],
        known.length === 0
          ? `${route} leads to an adapter, but no node has any`
          : `${route}: no node has ${shown === undefined ? "this adapter" : `the adapter ${quote(shown)}`}${suggestion(shown ?? "", known.map(safeName))}`
      )
      continue
    }
    checkLabels(findings, path, value, route, places)
    checkTarget(findings, path, value, route, places)
  }
}

/** Names of adapters are shown in lists only if they look like names. */
const safeName = (name: string): string => (/^[A-Za-z0-9._-]{1,64}$/.test(name) ? name : quote(name))

const checkLabels = (
  findings: Findings,
  path: ConfigPath,
  value: Record<string, unknown>,
  route: string,
  places: ReadonlyArray<Place>
): void => {
  const labels = value.labels
  if (!isRecord(labels) || Object.keys(labels).length === 0) return
  const fits = places.some((place) =>
    Object.entries(labels).every(
      ([name, wanted]) => Object.hasOwn(place.labels, name) && place.labels[name] === wanted
    )
  )
  if (fits) return
  const have = places.map((place) => {
    const names = Object.keys(place.labels).flatMap((name) => {
      const text = shownText(findings.tree, [...place.node, "labels", name])
      return text === undefined ? [] : [`${safeName(name)}: ${quote(text)}`]
    })
    return `${nodeName(findings.tree, place.node)} has ${names.length === 0 ? "none" : names.slice(0, 8).join(", ")}`
  })
  findings.warn(
    [...path, "labels"],
    `${route} leads nowhere: no node with its adapter has these labels; ${have.slice(0, 8).join("; ")}`
  )
}

const checkTarget = (
  findings: Findings,
  path: ConfigPath,
  value: Record<string, unknown>,
  route: string,
  places: ReadonlyArray<Place>
): void => {
  const { target } = value
  if (typeof target !== "string" || target === "") return
  if (places.some((place) => place.targets.length === 0 || place.targets.includes(target))) return
  findings.warn(
    [...path, "target"],
    `${route} leads nowhere: no node lists this target${suggestion(shownText(findings.tree, [...path, "target"]) ?? "", [...new Set(places.flatMap((place) => place.targets))].map(safeName))}`
  )
}
