import { MusterError } from "./errors.js";

const ENVELOPE = new Set([
  "id", "name", "type", "kind", "managedBy", "systemData", "location", "tags", "sku", "identity",
]);

/** A model from what JSON was parsed to: `properties` of a resource stand beside its name. */
export function read<T>(value: unknown): T {
  if (value !== null && typeof value === "object" && "properties" in value && isResource(value)) {
    const { properties, ...envelope } = value;
    return { ...(properties as object | null), ...envelope } as T;
  }
  return value as T;
}

/** A role definition has a `type` on both levels, so it stays as it is. */
function isResource(value: object): boolean {
  return !("type" in value) || value.type !== "Microsoft.Authorization/roleDefinitions";
}

/** The body of a resource. Undefined is not sent; null is. */
export function write(resource: object): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  const properties: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(resource)) {
    if (name === "etag") continue; // ifMatch says it
    (ENVELOPE.has(name) ? body : properties)[name] = value;
  }
  return { ...body, properties };
}

/** The body, or undefined where it is empty. The ETag of the answer is that of the resource. */
export async function decoded<T>(response: Response): Promise<T> {
  const text = await response.text();
  if (!text) return undefined as T;
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    const message = `${new URL(response.url).pathname} did not answer with JSON.`;
    throw new MusterError({ code: "UnexpectedAnswer", message }, response.status);
  }
  const value = read<T>(content);
  const etag = response.headers.get("etag");
  if (etag && typeof value === "object" && value !== null && "id" in value) {
    return { ...value, etag };
  }
  return value;
}
