import './styles/tokens.css'
import './styles/base.css'
import './styles/shell.css'
import './styles/parts.css'
import './styles/dialog.css'
import './styles/tables.css'
import './styles/overview.css'
import './styles/job.css'
import './styles/review.css'
import 'uplot/dist/uPlot.min.css'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { logInFromAddress } from './api/login.ts'
import { App } from './app.tsx'
import { applyStoredTheme } from './shell/theme.ts'

applyStoredTheme()
await logInFromAddress()
const place = document.getElementById('deck')
if (place !== null) {
  createRoot(place).render(
    <StrictMode>
      <App />
    </StrictMode>,
  )
}
