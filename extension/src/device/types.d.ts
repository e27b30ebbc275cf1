/** What a device stores, by store of its database, and what is given to it. Times are seconds since 1970. */

import type { DeviceRecord, ExplainedPart, LastLog, Manifest, OddsFigures, TokenRequest } from "../core/index.js";

/** the groups of users that take part */
export type Group = "local" | "opt-in";
/** `search`: lists are fetched and searched, and nothing is given */
export type Mode = "off" | "search" | Group;

export interface Settings {
  mode: Mode;
  paused: boolean;
  agreedAt: number | null;
  /** how many searches a round of each list may take, as the user was shown; absent where no number was kept: then 1 */
  agreed?: AgreedRecords;
  /** local answers that were opened a short time ago */
  suggestions: Suggestion[];
  /** how many searches were not kept, by reason */
  dropped: Record<string, number>;
}

export type AgreedRecords = Readonly<Record<string, Readonly<Record<Group, number>>>>;

export interface Suggestion {
  query: string | null;
  url: string | null;
  at: number;
}

/** What outlives a task that the user left. */
export interface TaskMemory {
  sequence: number;
  round: number;
  issued: number;
  killed: boolean;
  /** the public log as it was last checked; absent in tasks that were joined before there was one */
  log?: LastLog | null;
}

export interface Enrolment {
  server: string;
  task: string;
  /** public points in hexadecimal */
  keys: string[];
  /** absent in tasks that were joined before curators signed */
  curators?: string[];
  /** what opt-in users agree to; the sentence about the number may be left out */
  consent: string;
  code: string;
  /** the link to an account at the issuer of tokens; absent or empty: none */
  account?: string;
  hasUrls: boolean;
  /** asked instead of the server, with sealed requests */
  relay?: string;
  enrolledAt: number;
}

/** What pays for a report, from its request until the report that it pays for has it. */
export interface KeptToken extends TokenRequest {
  round: number;
  token: Uint8Array | null;
}

export interface Task extends Enrolment, TaskMemory {
  /** the newest one that was believed */
  manifest: Manifest | null;
  status: TaskStatus | null;
  token?: KeptToken;
}

/** Where to ask, and the newest manifest that was believed. */
export type Service = Pick<Task, "server" | "task" | "relay"> & { manifest?: Manifest | null };

export interface TaskStatus {
  code: string;
  at: number;
}

/** A search that was clicked; pages send it, so that nothing is known of its values. */
export interface Search {
  query: unknown;
  url: unknown;
  engine: string;
}

export interface KeptSearch {
  query: string;
  url: string | null;
  engine: string;
  at: number;
}

export interface Cost {
  epsilon: number;
  delta: number;
}

export interface Debit extends Cost {
  at: number;
  kind: Report["kind"];
  /** of a randomized report: the factor on the odds of any guess; absent in debits that were made before it was kept */
  growth?: number;
}

export type ReportStatus = "pending" | "sent" | "refused" | "cancelled" | "withdrawn";

/** What is said in a round: the exact bytes, and the truth, which stays on this device. */
interface RandomizedContent {
  kind: "report";
  bytes: Uint8Array | null;
  said: ExplainedPart[];
  /** what it gives away: numbers, or in reports of earlier versions an English sentence or nothing */
  odds?: OddsFigures | string;
  truth: DeviceRecord | null;
  /** what it is paid with, where the task asks for that */
  token?: Uint8Array;
}

interface SealedContent {
  kind: "sealed";
  bytes: Uint8Array | null;
  said: null;
  truth: DeviceRecord[] | null;
  credential: string;
}

export type ReportContent = RandomizedContent | SealedContent;

export interface Sending extends Cost {
  task: string;
  round: number;
  madeAt: number;
  sendAfter: number;
  status: ReportStatus;
  attempts: number;
  reason?: string | null;
  sentAt?: number;
  /** the true searches were removed because of their age */
  isForgotten?: boolean;
}

export type Report = ReportContent & Sending;
export type SealedReport = SealedContent & Sending;

export interface StoredPack {
  content: Uint8Array;
  artifact: string;
  round: number;
  at: number;
}

/** Key and value of each store; an earlier version may have written fewer settings. */
interface Entries {
  settings: ["settings", Partial<Settings>] | [`left ${string}`, TaskMemory];
  tasks: [string, Task];
  records: [[at: number, tie: number], KeptSearch];
  ledger: [[task: string, round: number], Debit];
  reports: [[task: string, round: number], Report];
  packs: [[task: string, slot: "current" | "previous"], StoredPack];
}

export type StoreName = keyof Entries;
export type Entry<S extends StoreName> = Entries[S];
export type Key<S extends StoreName> = Entry<S>[0];
/** the value below a key of this type */
export type Value<S extends StoreName, K extends Key<S>> = ValueOf<Entry<S>, K>;
type ValueOf<E, K> = E extends [infer EntryKey, infer V] ? (K extends EntryKey ? V : never) : never;

/** One transaction over all stores. */
export interface Transaction {
  get<S extends StoreName, K extends Key<S>>(store: S, key: K): Promise<Value<S, K> | undefined>;
  put<S extends StoreName, K extends Key<S>>(store: S, key: K, value: Value<S, K>): Promise<unknown>;
  remove<S extends StoreName>(store: S, key: Key<S>): Promise<unknown>;
  clear(store: StoreName): Promise<unknown>;
  /** All entries, in the order of their keys. */
  all<S extends StoreName>(store: S): Promise<Entry<S>[]>;
}

export type Work<R> = (transaction: Transaction) => Promise<R>;

export interface Storage {
  read<R>(work: Work<R>): Promise<R>;
  /** What `work` returns, after everything it wrote was committed; if it throws, nothing is written. */
  write<R>(work: Work<R>): Promise<R>;
  /** The same, and it is on the disk: a loss of power does not undo it. */
  writeDurably<R>(work: Work<R>): Promise<R>;
}

export type Fetch = (url: string, options: RequestInit) => Promise<Response>;
/** Runs one work of a name at a time. */
export type Lock = <R>(name: string, work: () => Promise<R>) => Promise<R>;
/** Is called with the name of each step, for tests of crashes. */
export type OnPoint = (name: string) => unknown;
