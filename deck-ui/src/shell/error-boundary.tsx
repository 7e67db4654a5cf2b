import { Component, type ReactNode } from 'react'
import { ProblemPanel } from '../parts/problem-panel.tsx'

interface ErrorBoundaryProps {
  readonly children: ReactNode
}

/** A page that failed says so, and the others stay reachable. */
export class ErrorBoundary extends Component<ErrorBoundaryProps, { readonly error: unknown }> {
  override state = { error: undefined as unknown }

  static getDerivedStateFromError(error: unknown) {
    return { error }
  }

  override render() {
    const { error } = this.state
    if (error === undefined) return this.props.children
    return <ProblemPanel error={error} onRetry={() => this.setState({ error: undefined })} />
  }
}
