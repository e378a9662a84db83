// What the contract of asynchronous appends is asked of; event_stores.cpp lists the stores.
#pragma once

#include <utility>

#include "contract/event_store.hpp"

#include <stela/asio.hpp>

#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <string_view>

namespace stela::test {

class AsyncContract : public EventStoreContract {
 protected:
  std::future<AppendResult> append(const AppendRequest& request) {
    return async.append(request, boost::asio::use_future);
  }
  std::future<AppendResult> append(std::string_view stream, ExpectedVersion expected,
                                   std::string_view type = "noted") {
    const StreamId id = StreamId::parse(stream);
    const NewEvent event{type, 1, false, "{}"};
    const StreamAppend one{id, expected, {&event, 1}};
    return append({.streams = {&one, 1}});
  }

  Store& handle = dynamic_cast<Store&>(*store);
  boost::asio::thread_pool pool{4};
  Async async{handle, pool, {.in_flight = 20'000}};
};

}  // namespace stela::test
