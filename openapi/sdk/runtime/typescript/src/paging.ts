import { decoded, read } from "./wire.js";
import type { Request, Transport } from "./transport.js";

/** All elements, fetched while they are read: `for await (const job of account.jobs.list())`. */
export class Pager<T> implements AsyncIterable<T> {
  readonly #transport: Transport;
  readonly #first: Request;
  readonly #whole: boolean; // a page is one element, with the link to the next

  constructor(transport: Transport, first: Request, whole = false) {
    this.#transport = transport;
    this.#first = first;
    this.#whole = whole;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.byPage()) yield* page;
  }

  /** The same, page by page. A page may be empty and still not be the last one. */
  async *byPage(): AsyncGenerator<T[], void, undefined> {
    let request: Request | undefined = this.#first;
    while (request !== undefined) {
      const answer: Response = await this.#transport.send(request);
      const page = await decoded<{ value?: unknown[]; nextLink?: string | null }>(answer);
      yield (this.#whole ? [page] : (page.value ?? [])).map((each) => read<T>(each));
      request = page.nextLink
        ? { method: "GET", url: page.nextLink, signal: this.#first.signal }
        : undefined;
    }
  }

  /** All elements in one array. */
  async toArray(): Promise<T[]> {
    const elements: T[] = [];
    for await (const each of this) elements.push(each);
    return elements;
  }
}
