/** The connection closed before an answer arrived. */
export class WireClosed extends Error {
  override readonly name = "WireClosed";

  constructor() {
    super("The connection closed.");
  }
}
