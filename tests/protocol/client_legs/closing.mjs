// Loaded into the conformance suite: its servers end when it closes them. It waits for its clients to end their
// connections, and this client goes on and keeps some for the next call.
import http from "node:http";

const close = http.Server.prototype.close;
http.Server.prototype.close = function (...rest) {
    this.closeAllConnections();
    return close.apply(this, rest);
};
