// What host.py needs of the host: WebSockets and random bytes. The page has both, and so has Node.
// Data crosses the border as files.

export function addHost(python) {
  const sockets = new Map();
  globalThis.host_open = (url, opened, received, closed) => {
    const id = sockets.size + 1;
    const socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => opened();
    socket.onclose = () => closed();
    socket.onmessage = (event) => {
      const file = `/in${id}`;
      python.FS.writeFile(file, new Uint8Array(event.data));
      received(file);
    };
    sockets.set(id, socket);
    return id;
  };
  globalThis.host_send = (id, file) => {
    const socket = sockets.get(id);
    if (socket.readyState === WebSocket.OPEN) {
      socket.send(python.FS.readFile(file));
    }
  };
  globalThis.host_close = (id) => sockets.get(id).close();
  globalThis.host_random = (size) =>
    Array.from(crypto.getRandomValues(new Uint8Array(size)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
