// Two stores that hold an aggregate of the same id and version.
#pragma once

#include "contract/event_store.hpp"
#include "support/orders.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <string>

namespace stela::test {

class IdentityContract : public EventStoreContract {
 protected:
  IdentityContract() {
    for (EventStore* const one : {store.get(), other.get()}) {
      Order order = Order::place(of_both, "jane", 100);
      Repository<Order>{*one}.save(order);
    }
  }
  const Id<Order> of_both = Id<Order>::from("7");
  Order loaded() { return Repository<Order>{*store}.load(of_both); }
  std::string place_of(EventStore& one) { return one.conventions().store->place; }
  /// What every refusal says.
  ::testing::Matcher<std::string> names_both() {
    using ::testing::HasSubstr;
    return ::testing::AllOf(HasSubstr("order-7"), HasSubstr(place_of(*store)),
                            HasSubstr(place_of(*other)),
                            HasSubstr("load it from the one that saves it"));
  }

  test::TempDir second_dir;
  std::unique_ptr<EventStore> other = GetParam().open(second_dir, clock, &metrics);
};

}  // namespace stela::test
