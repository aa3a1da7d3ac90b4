import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    reporters: ["default", ["json", { outputFile: "reports/test.json" }]],
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "test/**/*.test.ts"],
          sequence: { groupOrder: 0 },
          // A machine that is busy with something else is slow, not wrong.
          testTimeout: 60_000,
          hookTimeout: 60_000
        }
      },
      {
        test: {
          name: "e2e",
          include: ["e2e/**/*.test.ts"],
          // Each file runs a whole system of processes: one at a time, with nothing else beside it.
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
          testTimeout: 60_000,
          hookTimeout: 60_000
        }
      }
    ]
  }
})
