import { lost, sleep, type Request, type Transport } from "./transport.js";

const PAUSE = 2000; // milliseconds before a stream that was cut off is asked for again
const LAST = "end"; // the kind of the event after which there are no more
const FAILURES = 5; // streams in a row that had no event

/** Something that happened; `kind` says what, and `data` what is known of it. */
export interface Event {
  kind: string;
  /** Of the last event that was seen: a later stream goes on `after` it. */
  number: number | undefined;
  data: Record<string, unknown>;
}

/** Events as they happen; a stream that is cut off goes on where it was. */
export class EventStream implements AsyncIterable<Event> {
  constructor(
    private readonly transport: Transport,
    private readonly request: Request,
  ) {}

  async *[Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined> {
    let number: number | undefined;
    for (let failures = 0; ; ) {
      const headers = number === undefined ? {} : { "Last-Event-ID": String(number) };
      const response = await this.transport.send({ ...this.request, headers });
      try {
        for await (const event of events(response)) {
          failures = 0;
          number = event.number ?? number;
          if (event.kind === LAST) return;
          yield event;
        }
      } catch (error) {
        if (this.request.signal?.aborted || ++failures === FAILURES) throw lost(error);
      }
      if (this.request.query?.["follow"] === false) return;
      await sleep(PAUSE, this.request.signal);
    }
  }
}

async function* events(response: Response): AsyncGenerator<Event, void, undefined> {
  let kind = "message";
  let number: number | undefined;
  let data: string[] = [];
  for await (const line of lines(response)) {
    const [, name, value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? []; // s: JSON may contain U+2028
    if (line === "") {
      if (data.length > 0) {
        yield { kind, number, data: JSON.parse(data.join("\n")) as Record<string, unknown> };
      }
      kind = "message";
      data = [];
    } else if (name === "event") kind = value;
    else if (name === "data") data.push(value);
    else if (name === "id" && /^\d+$/.test(value)) number = Number(value);
  }
}

async function* lines(response: Response): AsyncGenerator<string, void, undefined> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const piece of pieces(response)) {
    const parts = (rest + decoder.decode(piece, { stream: true })).split(/\r?\n/);
    rest = parts.pop() ?? "";
    yield* parts;
  }
}

async function* pieces(response: Response): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = response.body?.getReader();
  if (!reader) return;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel();
  }
}

/** A file with all rows, which is never held in memory as a whole. */
export class Download implements AsyncIterable<Uint8Array> {
  constructor(
    private readonly transport: Transport,
    private readonly request: Request,
  ) {}

  /** Piece by piece; ConnectionFailed when the API can't complete the file. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    const response = await this.transport.send(this.request);
    try {
      yield* pieces(response);
    } catch (error) {
      throw lost(error);
    }
  }

  /** All of it. */
  async text(): Promise<string> {
    const decoder = new TextDecoder();
    let text = "";
    for await (const piece of this) text += decoder.decode(piece, { stream: true });
    return text + decoder.decode();
  }
}
