import { NotFound } from "./errors.js";
import type { JobExecution } from "./models.js";
import { Pager } from "./paging.js";
import { ExecutionPoller, OperationPoller } from "./polling.js";
import { Download, EventStream } from "./streams.js";
import { API_VERSION, type Query, type Request, Transport } from "./transport.js";
import { decoded, read } from "./wire.js";

export interface More {
  query?: Query;
  headers?: Record<string, string | null | undefined>;
  body?: unknown;
  /** The fields of a body; those that are undefined are left out. */
  fields?: Record<string, unknown>;
  signal?: AbortSignal | undefined;
}

/** A path of the API with the operations below it. */
export class Calls {
  constructor(
    protected readonly _transport: Transport,
    protected readonly _path: string,
  ) {}

  protected _quote(name: string | number): string {
    const text = encodeURIComponent(name);
    if (["", ".", ".."].includes(text)) throw new TypeError(`'${name}' is no name of a resource`);
    return text;
  }

  /** The id as a path, if it is one of such a resource. */
  protected _place(id: string, template: string): string {
    const pattern = new RegExp(`^${template.replace(/\{\w+\}/g, "[^/]+")}$`, "i");
    if (!pattern.test(id)) throw new TypeError(`'${id}' is no id such as ${template}`);
    return id.split("/").map(encodeURIComponent).join("/");
  }

  #request(method: string, path: string, more: More): Request {
    const { query, headers, signal } = more;
    let body = more.body;
    if (more.fields) {
      const given = Object.entries(more.fields).filter(([, value]) => value !== undefined);
      if (given.length > 0) body = Object.fromEntries(given);
    }
    const url = this._transport.url + this._path + path;
    const request: Request = { method, url, query: { "api-version": API_VERSION, ...query }, signal };
    if (headers) request.headers = headers;
    if (body !== undefined) request.body = body;
    return request;
  }

  protected async _call<T>(method: string, path: string, more: More): Promise<T> {
    return await decoded<T>(await this._transport.send(this.#request(method, path, more)));
  }

  protected async _listed<T>(method: string, path: string, more: More): Promise<T[]> {
    const { value } = await this._call<{ value: unknown[] }>(method, path, more);
    return value.map((each) => read<T>(each));
  }

  protected async _exists(method: string, path: string, more: More): Promise<boolean> {
    try {
      await this._transport.send(this.#request(method, path, more));
      return true;
    } catch (error) {
      if (error instanceof NotFound) return false;
      throw error;
    }
  }

  protected async _begin<T>(method: string, path: string, more: More): Promise<OperationPoller<T>> {
    const request = this.#request(method, path, more);
    const response = await this._transport.send(request);
    const url = response.headers.get("azure-asyncoperation");
    const final = { method: "GET", url: request.url, query: { "api-version": API_VERSION } };
    const first = await decoded<T>(response);
    return new OperationPoller<T>(this._transport, first, url, method === "DELETE" ? undefined : final);
  }

  protected async _execution(method: string, path: string, more: More): Promise<ExecutionPoller> {
    return new ExecutionPoller(this._transport, await this._call<JobExecution>(method, path, more));
  }

  protected _pages<T>(path: string, more: More): Pager<T> {
    return new Pager<T>(this._transport, this.#request("GET", path, more));
  }

  protected _parts<T>(path: string, more: More): Pager<T> {
    return new Pager<T>(this._transport, this.#request("GET", path, more), true);
  }

  protected _events(path: string, more: More): EventStream {
    return new EventStream(this._transport, this.#request("GET", path, more));
  }

  protected _download(path: string, more: More): Download {
    return new Download(this._transport, this.#request("GET", path, more));
  }
}
