#include <stela/framework/codec/detail/sealed_value.hpp>
#include <stela/projections_testing/history.hpp>

#include <utility>

namespace stela::testing {

Stream::Stream(const char* name) : id{StreamId::parse(name)} {}
Stream::Stream(const std::string& name) : id{StreamId::parse(name)} {}
Stream::Stream(StreamId the_id) : id{std::move(the_id)} {}

namespace detail {

std::string render_stored(const StoredEvent& event, Keyring* keys) {
  return event.stream.name() + ": " + event.type() + " v" + std::to_string(event.schema_version()) +
         ' ' + codec::reveal(event.payload, {keys, codec::Place::of_event(event.id)});
}

}  // namespace detail
}  // namespace stela::testing
