// One process of the leg: `receive CARRIER PORT` or `send CARRIER PORT PER_TURN`; the side that listens
// gets port 0. Figures go to the parent.
import { carriers } from "./carriers.ts"

const [role, name = "", port = "0", perTurn = "1"] = process.argv.slice(2)
const carrier = carriers[name]
if (carrier === undefined || process.send === undefined) throw new Error("started by frameLeg.ts only")

const tell = (figures: { readonly events?: number }) => {
  const { user, system } = process.cpuUsage()
  process.send?.({ ...figures, cpuUs: user + system, at: performance.now() })
}

if (role === "receive") {
  let events = 0
  const listening = await carrier.receive(() => {
    events += 1
  }, Number(port))
  process.on("message", () => tell({ events }))
  process.send({ port: listening })
} else {
  const many = Number(perTurn)
  let seq = 0
  const listening = await carrier.send(Number(port), (sender) => {
    const turn = () => {
      for (let i = 0; i < many; i++) sender.event(++seq)
      sender.flush(turn)
    }
    turn()
  })
  process.on("message", () => tell({}))
  process.send({ port: listening })
}
process.on("disconnect", () => process.exit(0))
