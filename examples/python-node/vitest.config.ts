import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["e2e/**/*.test.ts"],
    reporters: ["default", ["json", { outputFile: "reports/test.json" }]],
    // Each file runs a whole system of processes: one at a time.
    maxWorkers: 1,
    testTimeout: 60_000,
    hookTimeout: 60_000
  }
})
