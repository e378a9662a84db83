// A socket listening on loopback.
#pragma once

namespace stela::test {

/// Listens on a port that the system picked. Doesn't block. Closed by the destructor.
class LoopbackListener {
 public:
  LoopbackListener();
  ~LoopbackListener();
  LoopbackListener(const LoopbackListener&) = delete;
  LoopbackListener& operator=(const LoopbackListener&) = delete;

  int descriptor() const noexcept { return descriptor_; }
  int port() const noexcept { return port_; }
  /// The next connection; -1 if there is none.
  int accept() const;

 private:
  int descriptor_ = -1;
  int port_ = 0;
};

}  // namespace stela::test
