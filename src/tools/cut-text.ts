/** Keeps the head and the tail of a text, and says between them how much is missing. */
export function cutText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const notice = `\n[... ${text.length - maxChars} characters cut ...]\n`;
  const room = Math.max(0, maxChars - notice.length);
  const head = text.slice(0, Math.ceil(room / 2)).replace(/[\uD800-\uDBFF]$/, "");
  const tail = text.slice(text.length - Math.floor(room / 2)).replace(/^[\uDC00-\uDFFF]/, "");
  return `${head}${notice}${tail}`;
}
