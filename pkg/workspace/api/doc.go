// Package api serves the workspace contract over HTTP, but for what package
// account serves of it.
//
// Every route is owned by the signed-in user whom account's guard hands over:
// rows of somebody else are missing rows. Rules are those of package workspace,
// each write and its events are one transaction of the store, and what executes
// runs stands behind [Runtime]. What a route takes and answers is described by
// the OpenAPI document of this package, against which its tests hold every
// answer.
//
// Section numbers in this package's comments are those of the workspace
// contract.
package api
