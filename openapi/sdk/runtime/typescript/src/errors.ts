/** The object `error` of the API. */
export interface ErrorBody {
  code: string;
  message?: string;
  target?: string;
  details?: ErrorBody[];
}

/** `code` and `message` as the API has them; `details` are the single fields that were wrong. */
export class MusterError extends Error {
  override readonly name: string = "MusterError";
  readonly code: string;
  readonly status: number | undefined;
  readonly target: string | undefined;
  readonly details: MusterError[];
  readonly requestId: string | undefined;

  constructor(error: ErrorBody, status?: number, requestId?: string) {
    super(`${error.code}: ${error.message ?? ""}`);
    this.code = error.code;
    this.status = status;
    this.target = error.target;
    this.details = (error.details ?? []).map((each) => new MusterError(each));
    this.requestId = requestId;
  }
}

/** The API could not be reached, or the answer did not arrive. */
export class ConnectionFailed extends MusterError {
  override readonly name = "ConnectionFailed";
}
/** 304: the resource still has the ETag that `ifNoneMatch` names. */
export class NotModified extends MusterError {
  override readonly name = "NotModified";
}
/** 400: the request can never succeed as it is. */
export class BadRequest extends MusterError {
  override readonly name = "BadRequest";
}
/** 401: no token, or an invalid one. */
export class Unauthorized extends MusterError {
  override readonly name = "Unauthorized";
}
/** 403: the caller has no role that allows it. */
export class Forbidden extends MusterError {
  override readonly name = "Forbidden";
}
/** 404: the resource does not exist. */
export class NotFound extends MusterError {
  override readonly name = "NotFound";
}
/** 409: not possible now, or not in the present state. */
export class Conflict extends MusterError {
  override readonly name = "Conflict";
}
/** 412: the resource has changed, or exists already. */
export class PreconditionFailed extends MusterError {
  override readonly name = "PreconditionFailed";
}
/** 429, also after all retries. */
export class TooManyRequests extends MusterError {
  override readonly name = "TooManyRequests";
}
/** 503, also after all retries. */
export class ServiceUnavailable extends MusterError {
  override readonly name = "ServiceUnavailable";
}
/** A long-running operation ended as Failed or Canceled. */
export class OperationFailed extends MusterError {
  override readonly name = "OperationFailed";
}
/** What was waited for has not come in time. */
export class TimedOut extends MusterError {
  override readonly name = "TimedOut";
}

const BY_STATUS: Record<number, typeof MusterError> = {
  304: NotModified,
  400: BadRequest,
  401: Unauthorized,
  403: Forbidden,
  404: NotFound,
  409: Conflict,
  412: PreconditionFailed,
  429: TooManyRequests,
  503: ServiceUnavailable,
};

/** The error of an answer, whatever its body is. */
export async function refused(response: Response): Promise<MusterError> {
  const kind = BY_STATUS[response.status] ?? MusterError;
  const id = response.headers.get("x-ms-request-id") ?? undefined;
  const text = await response.text();
  try {
    const body = JSON.parse(text) as { error: ErrorBody };
    return new kind(body.error, response.status, id);
  } catch {
    const message = text.slice(0, 500) || `The API answered ${response.status}.`;
    return new kind({ code: `Http${response.status}`, message }, response.status, id);
  }
}
