/**
 * `npm run l10n`: brings the files of translations up to date with the texts of the product. What is gone is taken out,
 * what is new stands there empty; what is to be done is said.
 */
import { missing, surplus, translations, update } from "./texts.ts";

for (const translation of translations()) {
  const todo = missing(translation);
  console.log(`${translation.file}: ${todo.length} to translate, ${surplus(translation).length} taken out`);
  for (const key of todo) console.log(`  ${key}`);
  update(translation);
}
