export interface Counts {
  passed: number;
  failed: number;
}

/** Counts the cases of a JUnit report of `bun test`. A skipped case counts as failed. */
export async function readReport(path: string): Promise<Counts> {
  const file = Bun.file(path);
  return (await file.exists()) ? countCases(await file.text()) : { passed: 0, failed: 0 };
}

export function countCases(xml: string): Counts {
  const counts = { passed: 0, failed: 0 };
  for (const [, selfClosing, body] of xml.matchAll(/<testcase\b[^>]*?(?:(\/)>|>([\s\S]*?)<\/testcase>)/g)) {
    const bad = !selfClosing && /<(failure|error|skipped)\b/.test(body ?? "");
    if (bad) counts.failed++;
    else counts.passed++;
  }
  return counts;
}
