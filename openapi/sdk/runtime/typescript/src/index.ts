export * from "./clients.js";
export * from "./errors.js";
export type * from "./models.js";
export { Pager } from "./paging.js";
export { ExecutionPoller, OperationPoller, Poller, type WaitOptions } from "./polling.js";
export { Download, EventStream, type Event } from "./streams.js";
export type { CallOptions, ClientOptions } from "./transport.js";
