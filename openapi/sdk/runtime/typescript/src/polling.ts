import { OperationFailed, TimedOut, type ErrorBody } from "./errors.js";
import type { JobExecution } from "./models.js";
import { API_VERSION, retryAfter, sleep, type Request, type Transport } from "./transport.js";
import { decoded } from "./wire.js";

const ENDED = new Set(["Succeeded", "Failed", "Canceled"]);
const PAUSE = 1000; // milliseconds between two looks where the API names none

export interface WaitOptions {
  /** Seconds after which TimedOut is thrown; without it there is no limit. */
  timeout?: number;
  signal?: AbortSignal;
}

/** Work that goes on after its request was answered. */
export abstract class Poller<T> {
  protected ended = false;
  protected pause = PAUSE;

  /** How far it is; asks the API unless it has ended. */
  abstract status(signal?: AbortSignal): Promise<string>;
  protected abstract outcome(signal?: AbortSignal): Promise<T>;

  /** Whether it has ended; asks the API unless that is known. */
  async done(signal?: AbortSignal): Promise<boolean> {
    if (!this.ended) await this.status(signal);
    return this.ended;
  }

  /** Waits for the end. */
  async result(options: WaitOptions = {}): Promise<T> {
    const { timeout, signal } = options;
    const limit = timeout === undefined ? Infinity : performance.now() + timeout * 1000;
    while (!(await this.done(signal))) {
      if (performance.now() + this.pause > limit) {
        throw new TimedOut({ code: "TimedOut", message: `It has not ended after ${timeout} s.` });
      }
      await sleep(this.pause, signal);
    }
    return await this.outcome(signal);
  }
}

/** A long-running operation: creating, changing or deleting something that takes a while. */
export class OperationPoller<T> extends Poller<T> {
  #last: { status: string; error?: ErrorBody };

  constructor(
    private readonly transport: Transport,
    private readonly first: T,
    private readonly url: string | null,
    private readonly final: Request | undefined,
  ) {
    super();
    this.#last = { status: url === null ? "Succeeded" : "InProgress" };
    this.ended = url === null;
  }

  /** InProgress, Succeeded, Failed or Canceled; asks the API unless it has ended. */
  override async status(signal?: AbortSignal): Promise<string> {
    if (!this.ended && this.url !== null) {
      const answer = await this.transport.send({ method: "GET", url: this.url, signal });
      this.#last = await decoded(answer);
      this.pause = retryAfter(answer) ?? PAUSE;
      this.ended = ENDED.has(this.#last.status);
    }
    return this.#last.status;
  }

  /** The resource as it is after the operation; OperationFailed if that did not succeed. */
  protected override async outcome(signal?: AbortSignal): Promise<T> {
    if (this.#last.status !== "Succeeded") {
      throw new OperationFailed(this.#last.error ?? { code: `Operation${this.#last.status}` });
    }
    if (this.url === null || this.final === undefined) return this.first;
    return await decoded<T>(await this.transport.send({ ...this.final, signal }));
  }
}

/** A run of a job. Its result is the run as it ended, also when that is Failed. */
export class ExecutionPoller extends Poller<JobExecution> {
  constructor(
    private readonly transport: Transport,
    public execution: JobExecution,
  ) {
    super();
    this.ended = ENDED.has(execution.provisioningState ?? "");
  }

  /** The lifecycle: Created, InProgress, …, Succeeded; asks the API unless it has ended. */
  override async status(signal?: AbortSignal): Promise<string> {
    if (!this.ended) {
      const url = this.transport.url + this.execution.id.split("/").map(encodeURIComponent).join("/");
      const query = { "api-version": API_VERSION };
      this.execution = await decoded(await this.transport.send({ method: "GET", url, query, signal }));
      this.ended = ENDED.has(this.execution.provisioningState ?? "");
    }
    return this.execution.lifecycle ?? "";
  }

  protected override outcome(): Promise<JobExecution> {
    return Promise.resolve(this.execution);
  }
}
