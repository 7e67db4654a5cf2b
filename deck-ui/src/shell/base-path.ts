/** Where the Deck is mounted, from the page's `<base href>`; without a slash at its end, '' at the root. */
export const baseUrl = new URL('.', document.baseURI)
export const basePath = baseUrl.pathname.replace(/\/$/, '')
