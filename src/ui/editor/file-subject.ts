import { open } from "node:fs/promises";
import { extname } from "node:path";
import * as vscode from "vscode";
import { Refusal } from "../../engine/errors.ts";
import { sentence } from "../../engine/sentence.ts";
import type { PromptFile } from "../../engine/server-model.ts";
import {
  documentText,
  type DocumentText,
  fileOf,
  isOnDisk,
  openDocument,
  placeOf,
  textFile,
  titleOf,
} from "./place.ts";
import type { Subject } from "./subject.ts";

/** Maximum number of files in a prompt. */
export const FILE_COUNT = 50;
/** Maximum size of an image or PDF in bytes; the server stores it with the conversation. */
const MEDIA_BYTES = 10 * 1024 * 1024;
/** The number of bytes checked to detect binary files. */
const SAMPLE_BYTES = 8_192;
/** Types that models may read besides text. OpenCode knows which model can, and reports it. */
const MEDIA: Readonly<Record<string, string>> = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
  ".pdf": "application/pdf",
};

/**
 * Files and folders as a subject. The server lists a folder's entries without reading its files. Throws a
 * {@link Refusal} that names the file that can't be part of a prompt.
 */
export async function fileSubject(uris: readonly vscode.Uri[]): Promise<Subject> {
  const [first] = uris;
  if (!first) throw new Refusal("invalid-argument", sentence("Open or select a file, then try again."));
  if (uris.length > FILE_COUNT)
    throw new Refusal(
      "invalid-argument",
      sentence(
        "{0} files are selected; a prompt can have at most {1}. Select fewer, or their folder.",
        uris.length,
        FILE_COUNT,
      ),
    );
  const texts = await Promise.all(uris.map(fileText));
  const places = uris.map((uri) => placeOf(uri));
  return {
    title: uris.length === 1 ? titleOf(first) : vscode.l10n.t("{0} files", uris.length),
    text: texts.map(({ text }) => text).join("\n"),
    files: texts.flatMap(({ files }) => files),
    note: texts.find(({ note }) => note)?.note,
    variables: { file: places.join(", ") },
  };
}

/** A file or folder for a prompt; the editor's unsaved text takes precedence over the file on disk. */
export async function fileText(uri: vscode.Uri): Promise<DocumentText> {
  const document = openDocument(uri);
  if (document && !isOnDisk(document)) return documentText(document);
  const text = placeOf(uri);
  const file = await promptFile(uri);
  return file.mime === "text/plain" && document ? documentText(document) : { text, files: [file] };
}

async function promptFile(uri: vscode.Uri): Promise<PromptFile> {
  const name = placeOf(uri);
  if (uri.scheme !== "file") throw noFile(name);
  const { type, size } = await stat(uri, name);
  if (type & vscode.FileType.Directory) return fileOf(uri, "application/x-directory");
  // Reading a pipe or device may never end.
  if (!(type & vscode.FileType.File)) throw noFile(name);
  const mime = MEDIA[extname(uri.fsPath).toLowerCase()];
  if (mime === undefined) {
    if (await isText(uri, name)) return textFile(uri);
    throw new Refusal(
      "invalid-argument",
      sentence('"{0}" is a binary file. Select text files, images or PDFs.', name),
    );
  }
  if (size > MEDIA_BYTES)
    throw new Refusal(
      "invalid-argument",
      sentence('"{0}" is larger than 10 MB. Select a smaller image or PDF.', name),
    );
  return fileOf(uri, mime);
}

function noFile(name: string): Refusal {
  return new Refusal("invalid-argument", sentence('"{0}" isn\'t a file on this computer.', name));
}

async function stat(uri: vscode.Uri, name: string): Promise<vscode.FileStat> {
  try {
    return await vscode.workspace.fs.stat(uri);
  } catch {
    throw new Refusal("invalid-argument", sentence('"{0}" no longer exists.', name));
  }
}

/** Whether the start of the file contains no zero bytes. */
async function isText(uri: vscode.Uri, name: string): Promise<boolean> {
  const file = await open(uri.fsPath).catch(() => {
    throw new Refusal("invalid-argument", sentence('Can\'t read "{0}".', name));
  });
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(SAMPLE_BYTES), 0, SAMPLE_BYTES, 0);
    return !buffer.subarray(0, bytesRead).includes(0);
  } finally {
    await file.close();
  }
}
