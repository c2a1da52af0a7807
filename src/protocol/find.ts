/* For pages, which may not import the engine. */

export { countMatches, findExpression } from "../engine/find-text.ts";
