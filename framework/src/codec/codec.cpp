#include <stela/framework/codec/codec.hpp>

#include <new>

namespace stela {

std::string_view to_string(Codec codec) noexcept {
  return codec == Codec::json ? "json" : "portable_binary";
}

namespace codec {

void check_size(std::size_t size) {
  if (size > max_payload_size) {
    throw std::length_error{"is larger than 64 MiB, which no payload may be"};
  }
}

void rethrow_as_encode_error() {
  try {
    throw;
  } catch (const EncodeError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    throw EncodeError{e.what()};
  }
}

void rethrow_as_decode_error() {
  try {
    throw;
  } catch (const DecodeError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw DecodeError{"asks for more memory than there is"};
  } catch (const std::exception& e) {
    throw DecodeError{e.what()};
  } catch (...) {
    throw DecodeError{"made the event's own deserialisation throw"};
  }
}

}  // namespace codec
}  // namespace stela
