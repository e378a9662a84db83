#include "broker.hpp"

#include <stela/nats/detail/settings.hpp>
#include <stela/outbox/detail/settings.hpp>

namespace stela::tool {

nats::PublisherOptions broker_options(const Settings& settings, Fence fence,
                                      const Partitioner& partitioner) {
  nats::PublisherOptions options{.fence = fence, .partitioner = &partitioner};
  settings.apply("nats", nats::publisher_settings(), options);
  options.tenant = settings.text("tenant");
  return options;
}

RelayOptions relay_options(const Settings& settings) {
  RelayOptions options;
  settings.apply("outbox", relay_settings(), options);
  return options;
}

}  // namespace stela::tool
