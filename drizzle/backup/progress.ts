/** The progress of a long operation. */
export interface Progress {
  /** The current activity, e.g. `dumping`. */
  doing: string;
  table?: string;
  /** Bytes so far, and the total if it is known. */
  bytes?: number;
  of?: number;
}

export type OnProgress = (progress: Progress) => void;
