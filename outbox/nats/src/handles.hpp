// Owning handles of nats.c's objects.
#pragma once

#include <stela/framework/detail/forks.hpp>
#include <stela/framework/error.hpp>

#include <nats/nats.h>

#include <memory>
#include <string>

namespace stela::nats {

/// A forked child leaves its copies of the parent's objects alone: it lacks the nats.c threads that
/// destruction waits for, and closing a connection would close the parent's.
template <class T, void (*Destroy)(T*)>
class Destroyer {
 public:
  void operator()(T* object) const noexcept {
    if (stela::detail::count_forks() == forks_) Destroy(object);
  }

 private:
  int forks_ = stela::detail::count_forks();
};

using OptionsHandle = std::unique_ptr<natsOptions, Destroyer<natsOptions, natsOptions_Destroy>>;
using ConnectionHandle =
    std::unique_ptr<natsConnection, Destroyer<natsConnection, natsConnection_Destroy>>;
using ContextHandle = std::unique_ptr<jsCtx, Destroyer<jsCtx, jsCtx_Destroy>>;
using MessageHandle = std::unique_ptr<natsMsg, Destroyer<natsMsg, natsMsg_Destroy>>;
using StreamInfoHandle =
    std::unique_ptr<jsStreamInfo, Destroyer<jsStreamInfo, jsStreamInfo_Destroy>>;

using MetaDataHandle =
    std::unique_ptr<jsMsgMetaData, Destroyer<jsMsgMetaData, jsMsgMetaData_Destroy>>;
using SubscriptionHandle =
    std::unique_ptr<natsSubscription, Destroyer<natsSubscription, natsSubscription_Destroy>>;

/// No answer has arrived in time: the broker may be silent, or the line slow.
class BrokerSilent : public BrokerFailed {
 public:
  using BrokerFailed::BrokerFailed;
};

inline void check(natsStatus status, const std::string& doing) {
  if (status == NATS_OK) return;
  const std::string problem = doing + " failed: " + natsStatus_GetText(status);
  if (status == NATS_TIMEOUT) throw BrokerSilent{problem};
  throw BrokerFailed{problem};
}

}  // namespace stela::nats
