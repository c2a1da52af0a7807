import { Refusal } from "./errors.ts";
import { sentence } from "./sentence.ts";
import type { ModelRef } from "./task.ts";

/** Parses `provider/model`, where the model name may contain further slashes. Undefined for anything else. */
export function parseModel(text: string | undefined): ModelRef | undefined {
  const match = text?.match(/^([^/\s]+)\/(\S+)$/);
  return match?.[1] !== undefined && match[2] !== undefined
    ? { providerID: match[1], modelID: match[2] }
    : undefined;
}

/** Like {@link parseModel}, but throws a {@link Refusal} for invalid text. Undefined if no text is given. */
export function requireModel(text: string | undefined): ModelRef | undefined {
  const model = parseModel(text);
  if (text === undefined || model) return model;
  throw new Refusal("unknown-model", sentence('"{0}" isn\'t a model. Enter it as provider/model.', text));
}

/** The text that {@link parseModel} parses, or that it couldn't. Empty if there is no model. */
export function modelText(model: ModelRef | undefined): string {
  return model ? [model.providerID, model.modelID].filter(Boolean).join("/") : "";
}
