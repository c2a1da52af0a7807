import * as vscode from "vscode";
import { invalidArgument } from "../../engine/errors.ts";
import { excerpt, oneLine } from "../../engine/fork/excerpt.ts";
import { sentence } from "../../engine/sentence.ts";
import { openSettings } from "../dialogs.ts";
import { withoutIcons } from "../plain-text.ts";
import { referenceToEditor } from "../editor/place.ts";
import {
  aside,
  askText,
  type Heading,
  type ListItem,
  pickOne,
  type StepButton,
  type TextQuestion,
} from "../quick-input.ts";
import {
  asTemplate,
  fillIn,
  readTemplates,
  type Template,
  type TemplateList,
  type Variable,
  VARIABLES,
  type Variables,
} from "../launch-plan.ts";
import { type Answer, BACK, type Place, runWizard, type Step } from "../wizard.ts";
import type { LaunchMemory } from "./launch-memory.ts";

interface PromptQuestion<B> extends Heading {
  readonly hint: string;
  readonly meaning?: TextQuestion<B>["meaning"];
  readonly placeholder?: string | undefined;
  /** The name of the draft that keeps the text until it is used. */
  readonly draft: string;
  /** The error that the last attempt to use the text caused. */
  readonly problem?: string | undefined;
  /** Whether a text counts as empty; by default if it is blank. */
  readonly isEmpty?: ((text: string) => boolean) | undefined;
  /** The text to start with if there is no draft. */
  readonly initial?: string | undefined;
  /** The answer if the user continues in an editor. Undefined if that isn't offered. */
  readonly editor?: B | undefined;
  readonly buttons?: readonly StepButton<B>[];
}

/**
 * Asks for a prompt, starting with the draft of the last unused text. The text is kept however the box is closed;
 * callers drop the draft once they have used it.
 */
export function askPrompt<B>(
  memory: LaunchMemory,
  {
    hint,
    draft,
    isEmpty = (text) => text.trim() === "",
    initial = "",
    editor,
    buttons = [],
    ...question
  }: PromptQuestion<B>,
): Promise<Answer<string | B>> {
  const kept = memory.draft(draft);
  const reference = referenceToEditor();
  const insert = {
    iconPath: new vscode.ThemeIcon("mention"),
    tooltip: vscode.l10n.t("Insert {0}", reference ?? ""),
    inserts: reference ?? "",
  };
  const write = editor !== undefined && {
    iconPath: new vscode.ThemeIcon("edit"),
    tooltip: vscode.l10n.t("Write in an Editor"),
    gives: editor,
  };
  return askText({
    ...question,
    placeholder:
      question.placeholder ??
      vscode.l10n.t("Example: Find out why the tests are slow and summarize the causes."),
    prompt: kept === "" ? hint : vscode.l10n.t("{0} Your last text was kept.", hint),
    text: kept || initial,
    validate: (written) => (isEmpty(written) ? vscode.l10n.t("Enter a prompt first.") : undefined),
    keep: (written) => memory.keepDraft(draft, written),
    buttons: [...(reference === undefined ? [] : [insert]), ...(write ? [write] : []), ...buttons],
  });
}

const EXCERPT_LENGTH = 100;

/** A template or recent prompt that the user picked. */
export interface PickedPrompt {
  readonly text: string;
  /** The agent that the template names. */
  readonly agent?: string | undefined;
}

type Picked =
  | { readonly kind: "template"; readonly template: Template }
  | { readonly kind: "recent"; readonly text: string }
  /** Saves this recent prompt as a template. */
  | { readonly kind: "save"; readonly text: string }
  | { readonly kind: "settings" };
type Item = ListItem<Picked> & { readonly value?: Picked };

interface Picking {
  readonly prompt?: PickedPrompt;
  /** The recent prompt to save as a template. */
  readonly saved?: string;
}

/** Asks for a template or a recent prompt. Undefined if the user cancelled or opened the settings instead. */
export async function pickPrompt(
  memory: LaunchMemory,
  variables: Variables,
  canGoBack = false,
): Promise<Answer<PickedPrompt>> {
  const pick: Step<Picking> = {
    take: async (state, place) => {
      const picked = await ask(memory, place);
      if (picked === undefined || picked === BACK) return picked;
      switch (picked.kind) {
        case "settings":
          await openSettings(`${SECTION}.${NAME}`);
          return undefined;
        case "recent":
          return { state: { prompt: { text: picked.text } } };
        case "template":
          return { state: { prompt: fillTemplate(picked.template, variables) } };
        case "save":
          return { state: { ...state, saved: picked.text }, to: save };
      }
    },
  };
  const save: Step<Picking> = {
    take: async ({ saved = "" }, place) => {
      const name = await aside(askTemplateName(place));
      if (name !== undefined) await saveTemplate(name.trim(), saved);
      return { state: {}, to: pick };
    },
  };
  const { state, end } = await runWizard([pick], {}, { canGoBack });
  return end === "back" ? BACK : state.prompt;
}

/** Fills in the template with this name. Throws a `Refusal` if there is none. */
export function namedPrompt(name: string, variables: Variables): PickedPrompt {
  const template = templateList().templates.find((each) => each.name === name);
  if (template) return fillTemplate(template, variables);
  throw invalidArgument(
    sentence('Template "{0}" doesn\'t exist. Add it to the setting asyncagents.templates.', name),
  );
}

function fillTemplate({ name, prompt, agent }: Template, variables: Variables): PickedPrompt {
  const filled = fillIn(prompt, variables);
  switch (filled.kind) {
    case "text":
      return { text: filled.text, agent };
    case "unknown":
      throw invalidArgument(
        sentence(
          'The template "{0}" has unknown variables: {1}. Available variables: {2}. Fix the template in the setting asyncagents.templates.',
          name,
          filled.names.map(written).join(", "),
          VARIABLES.map(written).join(", "),
        ),
      );
    case "missing":
      throw invalidArgument(missing(name, filled.name));
  }
}

function missing(template: string, name: Variable): string {
  switch (name) {
    case "selection":
      return vscode.l10n.t(
        'The template "{0}" needs a selection. Select some text in the editor, then try again.',
        template,
      );
    case "file":
      return vscode.l10n.t('The template "{0}" needs a file. Open one, then try again.', template);
    case "problem":
      return vscode.l10n.t(
        'The template "{0}" needs a problem. Place the cursor on one in the editor, then try again.',
        template,
      );
  }
}

function written(name: string): string {
  return `\${${name}}`;
}

async function ask(memory: LaunchMemory, place: Place): Promise<Answer<Picked>> {
  const forgetAll = {
    iconPath: new vscode.ThemeIcon("clear-all"),
    tooltip: vscode.l10n.t("Clear Recent Prompts"),
    changes: () => memory.forgetPrompts(),
  };
  const picked = await pickOne<Item, Picked>({
    ...place,
    title: vscode.l10n.t("Launch Task: Templates and Recent Prompts"),
    placeholder: vscode.l10n.t("Use a template or a recent prompt"),
    items: () => [...templateItems(), ...recentItems(memory)],
    buttons: memory.prompts.length > 0 ? [forgetAll] : [],
  });
  if (picked === undefined || picked === BACK) return picked;
  return "label" in picked ? picked.value : picked;
}

function templateItems(): readonly Item[] {
  const { templates, broken } = templateList();
  const edit: Item = {
    label:
      templates.length > 0
        ? vscode.l10n.t("$(gear) Edit Templates…")
        : vscode.l10n.t("$(gear) Create Templates…"),
    description: vscode.l10n.t("from settings"),
    value: { kind: "settings" },
  };
  return [
    separator(vscode.l10n.t("Templates")),
    ...templates.map((template): Item => ({
      label: withoutIcons(template.name),
      description: withoutIcons(template.description ?? ""),
      detail: shown(template.prompt),
      value: { kind: "template", template },
    })),
    ...broken.map((name): Item => ({
      label: vscode.l10n.t("$(warning) {0}", withoutIcons(name)),
      description: vscode.l10n.t('isn\'t a template: expected a string, or an object with a string "prompt"'),
      value: { kind: "settings" },
    })),
    edit,
  ];
}

function recentItems(memory: LaunchMemory): readonly Item[] {
  const { prompts } = memory;
  if (prompts.length === 0) return [];
  return [
    separator(vscode.l10n.t("Recent Prompts")),
    ...prompts.map((text): Item => ({
      label: shown(text),
      buttons: [
        {
          iconPath: new vscode.ThemeIcon("bookmark"),
          tooltip: vscode.l10n.t("Save as Template"),
          gives: { kind: "save", text },
        },
        {
          iconPath: new vscode.ThemeIcon("close"),
          tooltip: vscode.l10n.t("Remove"),
          changes: () => memory.forgetPrompt(text),
        },
      ],
      value: { kind: "recent", text },
    })),
  ];
}

function separator(label: string): Item {
  return { label, kind: vscode.QuickPickItemKind.Separator };
}

function shown(prompt: string): string {
  return withoutIcons(excerpt(oneLine(prompt), EXCERPT_LENGTH));
}

function askTemplateName(place: Place): Promise<Answer<string>> {
  const { templates, broken } = templateList();
  const taken = [...templates.map(({ name }) => name), ...broken];
  return askText({
    ...place,
    title: vscode.l10n.t("Save as Template"),
    placeholder: "",
    prompt: vscode.l10n.t("Enter a name for the template. It is saved in your settings."),
    text: "",
    validate: (value) => {
      if (value.trim() === "") return vscode.l10n.t("Enter a name.");
      return taken.includes(value.trim())
        ? vscode.l10n.t("A template with this name already exists. Enter another name.")
        : undefined;
    },
  });
}

const SECTION = "asyncagents";
const NAME = "templates";

/** The templates of the user and of the workspace; for equal names, the workspace's template wins. */
function templateList(): TemplateList {
  const settings = vscode.workspace.getConfiguration(SECTION).inspect<unknown>(NAME);
  return readTemplates([settings?.globalValue, settings?.workspaceValue]);
}

/** Saves a prompt in the user's own templates. */
async function saveTemplate(name: string, prompt: string): Promise<void> {
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const own = configuration.inspect<object>(NAME)?.globalValue;
  const templates = { ...own, [name]: asTemplate(prompt) };
  await configuration.update(NAME, templates, vscode.ConfigurationTarget.Global);
}
