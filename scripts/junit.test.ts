import { expect, test } from "bun:test";
import { countCases } from "./junit.ts";

test("counts passed cases, and failed, broken or skipped ones", () => {
  const xml = `<?xml version="1.0"?><testsuites tests="5">
<testsuite name="a.test.ts"><testcase name="one &gt; two" time="0.1" />
<testcase name="three"></testcase>
<testcase name="four"><failure type="AssertionError" message="&lt;testcase" /></testcase>
<testcase name="five"><error/></testcase>
<testcase name="six"><skipped /></testcase></testsuite></testsuites>`;
  expect(countCases(xml)).toEqual({ passed: 2, failed: 3 });
});
