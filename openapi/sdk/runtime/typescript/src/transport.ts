import { ConnectionFailed, MusterError, refused } from "./errors.js";
import { VERSION } from "./version.js";

export const API_VERSION = "2025-01-01";
const BACKOFF = [500, 1000, 2000, 4000, 8000]; // milliseconds where an answer names no time
const LONGEST_WAIT = 60_000; // milliseconds; a longer Retry-After is not waited for
const READS = new Set(["GET", "HEAD"]);

export interface ClientOptions {
  /** A bearer token, or a function that is asked for one before each request. */
  token: string | (() => string | Promise<string>);
  /** How often a request is sent again after 429, 503 or a lost connection; 5. */
  retries?: number;
  /** Sends requests; the `fetch` of the platform. */
  fetch?: typeof fetch;
}

/** What every method takes besides its own options. */
export interface CallOptions {
  /** Ends the call, and all waiting that belongs to it. */
  signal?: AbortSignal | undefined;
}

export type Query = Record<string, string | number | boolean | Date | null | undefined>;

export interface Request {
  method: string;
  url: string;
  query?: Query;
  headers?: Record<string, string | null | undefined>;
  body?: unknown;
  signal?: AbortSignal | undefined;
}

/** Sends requests, and sends them again when the API asks for that. */
export class Transport {
  readonly url: string;
  readonly #options: ClientOptions;
  readonly #retries: number;

  constructor(url: string, options: ClientOptions) {
    this.url = url.replace(/\/+$/, "");
    this.#options = options;
    this.#retries = options.retries ?? 5;
  }

  /** An answer that says yes; all others are thrown. */
  async send(request: Request): Promise<Response> {
    const url = address(request, this.url);
    const id = crypto.randomUUID(); // the key of a write, so that it takes effect once however often it is sent
    for (let attempt = 0; ; attempt++) {
      const response = await this.#once(url, request, id, attempt);
      if (response === undefined) continue;
      if (response.ok) return response;
      const wait = waitBeforeRetry(response, attempt, this.#retries);
      if (wait === undefined) throw await refused(response);
      await response.body?.cancel();
      await sleep(wait, request.signal);
    }
  }

  async #once(
    url: string,
    request: Request,
    id: string,
    attempt: number,
  ): Promise<Response | undefined> {
    const { token, fetch: send = fetch } = this.#options;
    const headers = new Headers({
      Authorization: `Bearer ${typeof token === "string" ? token : await token()}`,
      "x-ms-client-request-id": id,
      "User-Agent": `muster-sdk-typescript/${VERSION}`,
    });
    if (!READS.has(request.method)) headers.set("Idempotency-Key", id);
    for (const [name, value] of Object.entries(request.headers ?? {})) {
      if (value != null) headers.set(name, value);
    }
    const init: RequestInit = { method: request.method, headers, redirect: "error" };
    if (request.signal) init.signal = request.signal;
    if (request.body !== undefined) {
      headers.set("Content-Type", "application/json");
      init.body = JSON.stringify(request.body);
    }
    try {
      return await send(url, init);
    } catch (error) {
      if (request.signal?.aborted) throw error;
      if (attempt >= this.#retries) throw lost(error);
      await sleep(BACKOFF[Math.min(attempt, BACKOFF.length - 1)] ?? 0, request.signal);
      return undefined;
    }
  }
}

/** Links of answers are followed with the token, so they must lead to the same API. */
function address(request: Request, base: string): string {
  const url = new URL(request.url, base);
  if (url.origin !== new URL(base).origin) {
    const message = `The API linked to ${url.origin}, which is another one.`;
    throw new MusterError({ code: "ForeignLink", message });
  }
  for (const [name, value] of Object.entries(request.query ?? {})) {
    if (value == null) continue;
    url.searchParams.set(name, value instanceof Date ? value.toISOString() : String(value));
  }
  return url.href;
}

function waitBeforeRetry(response: Response, attempt: number, retries: number): number | undefined {
  if (![429, 503].includes(response.status) || attempt >= retries) return undefined;
  const wait = retryAfter(response) ?? BACKOFF[Math.min(attempt, BACKOFF.length - 1)] ?? 0;
  return wait <= LONGEST_WAIT ? wait : undefined;
}

/** Milliseconds. */
export function retryAfter(response: Response): number | undefined {
  const seconds = Number(response.headers.get("retry-after") ?? NaN);
  return Number.isNaN(seconds) ? undefined : seconds * 1000;
}

export function lost(error: unknown): ConnectionFailed {
  const cause = (error as { cause?: { message?: string } }).cause?.message;
  const failed = new ConnectionFailed({ code: "ConnectionFailed", message: cause ?? String(error) });
  failed.cause = error;
  return failed;
}

export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(done, milliseconds);
    function done(): void {
      signal?.removeEventListener("abort", stop);
      resolve();
    }
    function stop(): void {
      clearTimeout(timer);
      reject(signal?.reason);
    }
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
