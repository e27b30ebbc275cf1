/**
 * What can go wrong, from the general to the particular:
 *
 *     SearchblendError
 *     ├── InvalidParameter   a value that a caller gave; .field names it
 *     ├── MessageError       bytes or a document that do not follow the protocol
 *     │   └── ReportRefused  not a report of this round; .reason is the problem's name
 *     └── PolicyRefused      well-formed, signed, and still more than this device agrees to; .reason
 *
 * No message holds a query, a URL or anything else of a person.
 */

export class SearchblendError extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = new.target.name;
  }
}

export class InvalidParameter extends SearchblendError {
  /** @param {string} field @param {string} problem */
  constructor(field, problem) {
    super(`${field}: ${problem}`);
    this.field = field;
  }
}

export class MessageError extends SearchblendError {}

export class ReportRefused extends MessageError {
  /** @param {string} reason @param {string} problem */
  constructor(reason, problem) {
    super(`report: ${problem}`);
    this.reason = reason;
  }
}

export class PolicyRefused extends SearchblendError {
  /** @param {string} reason @param {string} problem */
  constructor(reason, problem) {
    super(`${reason}: ${problem}`);
    this.reason = reason;
  }
}

/** What `make` returns; a parameter that it refuses came in a message, so that the message is wrong.
 * @template T @param {string} where @param {() => T} make */
export function asMessageError(where, make) {
  try {
    return make();
  } catch (error) {
    if (error instanceof InvalidParameter) throw new MessageError(`${where}${error.message}`);
    throw error;
  }
}
