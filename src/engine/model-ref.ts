import { Refusal } from "./errors.ts";
import { sentence } from "./sentence.ts";
import type { ModelRef } from "./task.ts";

/** `provider/model`; undefined for anything else. The model's own name may hold further slashes. */
export function parseModel(text: string | undefined): ModelRef | undefined {
  const match = text?.match(/^([^/\s]+)\/(\S+)$/);
  return match?.[1] !== undefined && match[2] !== undefined
    ? { providerID: match[1], modelID: match[2] }
    : undefined;
}

/** As {@link parseModel}; throws a {@link Refusal} for a text that names none. Undefined: none is wanted. */
export function requireModel(text: string | undefined): ModelRef | undefined {
  const model = parseModel(text);
  if (text === undefined || model) return model;
  throw new Refusal("unknown-model", sentence('"{0}" isn\'t a model. Enter it as provider/model.', text));
}

/** As {@link parseModel} reads it; empty for none. */
export function modelText(model: ModelRef | undefined): string {
  return model ? `${model.providerID}/${model.modelID}` : "";
}
