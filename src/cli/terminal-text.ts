/**
 * What may reach a terminal. Payloads, keys, messages and names come from jobs, so they may hold escape sequences that
 * clear the screen, line feeds that forge a log line, and marks that reverse the direction of writing.
 */
import { stripVTControlCharacters } from 'node:util'

/** Control characters, and marks that reorder or break lines. */
const hidden = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu
/** The same without line feeds and tabs, for texts of several lines. */
const hiddenInLines = /[^\P{Cc}\n\t]|[\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu
const loneSurrogate = /\p{Surrogate}/gu

/** One line: line breaks and tabs become blanks. */
export function oneLine(text: string): string {
  return visible(text.replace(/[\r\n\t]+/g, ' '), hidden)
}

/** Several lines: line feeds and tabs stay. */
export function severalLines(text: string): string {
  return visible(text.replace(/\r\n?/g, '\n'), hiddenInLines)
}

function visible(text: string, unwanted: RegExp): string {
  return stripVTControlCharacters(text).replace(unwanted, '').replace(loneSurrogate, '\ufffd')
}

/** JSON text for machines that may still end in a terminal: nothing is lost, what is hidden is escaped. */
export function jsonLine(value: unknown): string {
  const escape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  return (JSON.stringify(value) ?? 'null').replace(hidden, escape)
}
