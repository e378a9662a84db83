// The customer: a number and personal data.
#pragma once

#include <stela/framework.hpp>
#include <stela/framework/extern_templates.hpp>
#include <stela/framework/personal.hpp>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace orders {

class Customer;
using CustomerId = stela::Id<Customer>;

/// Name and address are sealed with a key of the customer, so that both can be forgotten.
struct CustomerRegistered {
  static constexpr stela::EventType event_type{"customer.registered", 1, stela::local};
  CustomerId customer;
  stela::Personal<std::string> name;
  stela::Personal<std::string> address;
  static constexpr auto subject = &CustomerRegistered::customer;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer), CEREAL_NVP(name), CEREAL_NVP(address));
  }
};

using CustomerEvents = stela::EventSet<CustomerRegistered>;

struct CustomerState {
  bool is_registered = false;
  stela::Personal<std::string> name;
  stela::Personal<std::string> address;
  static constexpr auto subject = stela::stream_is_subject;

  void apply(const CustomerRegistered& registered) {
    is_registered = true;
    name = registered.name;
    address = registered.address;
  }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(is_registered), CEREAL_NVP(name), CEREAL_NVP(address));
  }
};

class Customer : public stela::AggregateRoot<CustomerState, CustomerEvents> {
 public:
  static constexpr std::string_view category = "customer";
  using AggregateRoot::AggregateRoot;

  void be_registered(const CustomerId& id, std::string name, std::string address) {
    if (state().is_registered) throw std::domain_error{"there is such a customer already"};
    record(CustomerRegistered{id, std::move(name), std::move(address)});
  }
};

}  // namespace orders

// Compiled in domain.cpp.
STELA_EXTERN_AGGREGATE(orders::Customer);
STELA_EXTERN_EVENT(orders::CustomerRegistered);
