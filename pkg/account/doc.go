// Package account knows the people who may use the workspace: their accounts,
// their sessions, and what a request must prove before it reaches a route.
//
// [Service] holds the rules of accounts over a [Store]; commands and the HTTP
// side both go through it. [Guard] puts every request through the checks of the
// workspace contract, in its order: Host, Origin and CSRF, body, session,
// password change, role. [Endpoints] are the routes about accounts themselves.
// Contract: workspace, sections 1.3 to 1.8 and 9.7.
package account
