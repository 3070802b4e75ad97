// A file is no bundle, or arrays do not fit the model: what is wrong, and what to do where that is known.

export class BundleError extends Error {
  constructor(reason, wayOut = "", options = {}) {
    super(wayOut ? `${reason}; ${wayOut}` : reason, options);
    this.name = "BundleError";
    this.reason = reason;
    this.wayOut = wayOut;
  }
}
