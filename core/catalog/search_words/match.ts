import { setImmediate } from "node:timers/promises";
import { foldText, hasWordBeside } from "./fold.ts";

interface Term {
  id: number;
  text: string;
}

/** Terms to search for together: built once, used for each text. */
export interface Vocabulary {
  /** The ids of the terms in the text, ascending and unique. */
  find(text: string): number[];
}

/**
 * Builds a vocabulary that finds all terms in one pass over a text (Aho and Corasick, "Efficient string matching", CACM
 * 18/6, 1975), including terms inside others.
 *
 * A term is found in any spelling (case, width, composed or not; a run of space and hyphens is one space), unless a
 * letter, mark or number is directly before or after it. So `leak` is not in `leakage`, and `C++` is in `(C++)`. In
 * Chinese, Japanese or Thai, which have no spaces between words, it is found anywhere.
 */
export function buildVocabulary(terms: readonly Term[]): Vocabulary {
  const building = steps(terms);
  for (;;) {
    const step = building.next();
    if (step.done) return step.value;
  }
}

/** The same, in steps: a hundred thousand terms take seconds, which would block this process. */
export async function buildVocabularyBeside(terms: readonly Term[]): Promise<Vocabulary> {
  const building = steps(terms);
  for (;;) {
    const step = building.next();
    if (step.done) return step.value;
    await setImmediate();
  }
}

/** How many terms or nodes a step processes. */
const pieceOf = { terms: 500, nodes: 20_000 };

function* steps(terms: readonly Term[]): Generator<void, Vocabulary, void> {
  const trie = yield* plant(terms);
  const { size, edges } = trie;
  /** The node of the longest proper suffix of a node's text, and the nearest such node where a term ends (0: none). */
  const shorter = new Int32Array(size);
  const shorterEnd = new Int32Array(size);
  // In order of depth, so that shorter ones are known before.
  const nodes = byDepth(trie);
  for (const [i, node] of nodes.entries()) {
    if (i % pieceOf.nodes === 0) yield;
    const parent = trie.parents[node]!;
    let back = parent;
    let next: number | undefined;
    while (back !== 0 && next === undefined) {
      back = shorter[back]!;
      next = edges.get(back, trie.units[node]!);
    }
    shorter[node] = next ?? 0;
    const end = shorter[node]!;
    shorterEnd[node] = trie.ends.has(end) ? end : shorterEnd[end]!;
  }

  return {
    find(text) {
      const folded = foldText(text);
      const found = new Set<number>();
      let node = 0;
      for (let at = 0; at < folded.length; at += 1) {
        const unit = folded.charCodeAt(at);
        let next = edges.get(node, unit);
        while (next === undefined && node !== 0) {
          node = shorter[node]!;
          next = edges.get(node, unit);
        }
        node = next ?? 0;
        let end = trie.ends.has(node) ? node : shorterEnd[node]!;
        if (end === 0 || hasWordBeside(folded, at + 1, "after")) continue;
        for (; end !== 0; end = shorterEnd[end]!) {
          if (hasWordBeside(folded, at + 1 - trie.depths[end]!, "before")) continue;
          for (const id of trie.ends.get(end)!) found.add(id);
        }
      }
      return [...found].sort((a, b) => a - b);
    },
  };
}

interface Trie {
  /** The number of nodes. Node 0 is the root. */
  size: number;
  edges: Edges;
  parents: readonly number[];
  /** The UTF-16 unit that leads to a node. */
  units: readonly number[];
  depths: readonly number[];
  /** The terms that end at a node. */
  ends: ReadonlyMap<number, readonly number[]>;
}

function* plant(terms: readonly Term[]): Generator<void, Trie, void> {
  const edges = new Edges();
  const parents = [0];
  const units = [0];
  const depths = [0];
  const ends = new Map<number, number[]>();
  for (const [i, { id, text }] of terms.entries()) {
    if (i % pieceOf.terms === 0) yield;
    const folded = foldText(text);
    let node = 0;
    for (let at = 0; at < folded.length; at += 1) {
      const unit = folded.charCodeAt(at);
      let next = edges.get(node, unit);
      if (next === undefined) {
        next = parents.push(node) - 1;
        units.push(unit);
        depths.push(at + 1);
        edges.set(node, unit, next);
      }
      node = next;
    }
    // A term of hyphens only is empty after folding.
    if (node !== 0) ends.set(node, [...(ends.get(node) ?? []), id]);
  }
  return { size: parents.length, edges, parents, units, depths, ends };
}

/** All nodes except the root, shallow ones first. */
function byDepth({ size, depths }: Trie): Int32Array {
  // A counting sort: millions of nodes have a few hundred depths.
  const first = [0];
  for (let node = 1; node < size; node += 1) first[depths[node]!] = (first[depths[node]!] ?? 0) + 1;
  let before = 0;
  for (const [depth, count = 0] of first.entries()) {
    first[depth] = before;
    before += count;
  }
  const nodes = new Int32Array(size - 1);
  for (let node = 1; node < size; node += 1) nodes[first[depths[node]!]!++] = node;
  return nodes;
}

/** Maps a node and a UTF-16 unit to the next node: a hash table in typed arrays, several times as fast as a Map. */
class Edges {
  private nodes = new Int32Array(1024).fill(-1);
  private units = new Uint16Array(1024);
  private targets = new Int32Array(1024);
  private count = 0;

  get(node: number, unit: number): number | undefined {
    const place = this.placeOf(node, unit);
    return this.nodes[place] === node ? this.targets[place] : undefined;
  }

  set(node: number, unit: number, target: number): void {
    if (this.count * 2 >= this.nodes.length) this.grow();
    this.put(node, unit, target);
    this.count += 1;
  }

  /** Returns where the edge is, or the free place for it. */
  private placeOf(node: number, unit: number): number {
    const mask = this.nodes.length - 1;
    let place = Math.imul(Math.imul(node, 0x9e3779b1) ^ unit, 0x85ebca6b) >>> 7;
    for (place &= mask; this.nodes[place] !== -1; place = (place + 1) & mask) {
      if (this.nodes[place] === node && this.units[place] === unit) break;
    }
    return place;
  }

  private put(node: number, unit: number, target: number): void {
    const place = this.placeOf(node, unit);
    this.nodes[place] = node;
    this.units[place] = unit;
    this.targets[place] = target;
  }

  private grow(): void {
    const { nodes, units, targets } = this;
    this.nodes = new Int32Array(nodes.length * 2).fill(-1);
    this.units = new Uint16Array(nodes.length * 2);
    this.targets = new Int32Array(nodes.length * 2);
    for (let i = 0; i < nodes.length; i += 1) {
      if (nodes[i] !== -1) this.put(nodes[i]!, units[i]!, targets[i]!);
    }
  }
}
