"""One task behind one address: the server, the requests it answers, and a session's client of it."""
