// The bundled fake node as a child of the edge: a node like any other, that ends when its edge does. However the edge
// ends, the system closes its end of the child's stdin.
process.stdin.on("end", () => process.exit(0))
process.stdin.on("error", () => process.exit(0))
process.stdin.resume()

await import("mock-node/main")
