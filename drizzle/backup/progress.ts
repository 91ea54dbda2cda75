/** How far a long piece of work is, for a person who waits. */
export interface Progress {
  /** What is being done, e.g. `dumping`. */
  doing: string;
  table?: string;
  /** Bytes so far, and all of them where that is known. */
  bytes?: number;
  of?: number;
}

export type OnProgress = (progress: Progress) => void;
