// Who sent the request that a handler works on.
import { Context } from "effect"
import type { RequestContext } from "../http/HttpListener.ts"

export const RequestInfo = Context.Reference<RequestContext>("@iop/edge/admin/RequestInfo", {
  defaultValue: () => ({ requestId: "", caller: "admin", keyed: false, route: "none" })
})
