#include <stela/framework/codec/codec.hpp>
#include <stela/framework/error.hpp>

#include <new>

namespace stela {

std::string_view to_string(Codec codec) noexcept {
  return codec == Codec::json ? "json" : "portable_binary";
}

namespace codec {

void PathText::add_member(std::string_view name) {
  if (!text_.empty()) text_ += '.';
  text_ += name;
}

void PathText::add_element(std::size_t index) {
  text_.append(1, '[').append(std::to_string(index)).append(1, ']');
}

std::string PathText::text() const {
  return text_.empty() ? "the payload" : text_;
}

std::string unnamed_field(std::size_t number) {
  std::string name = "value";
  return name.append(std::to_string(number));
}

namespace {

constexpr std::string_view not_an_exception = "threw something that isn't a std::exception";

}  // namespace

void rethrow_as_encode_error(const std::string& path) {
  try {
    throw;
  } catch (const EncodeError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const Error& e) {
    if (e.code() != ErrorCode::usage) throw;  // of the keys, which are no fault of the value
    throw EncodeError{path + ": " + e.what()};
  } catch (const std::exception& e) {
    throw EncodeError{path + ": " + e.what()};
  } catch (...) {
    throw EncodeError{path + ": its serialisation " + std::string{not_an_exception}};
  }
}

void rethrow_as_decode_error(const std::string& path) {
  try {
    throw;
  } catch (const DecodeError&) {
    throw;
  } catch (const std::bad_array_new_length&) {
    throw DecodeError{path + " asks for more memory than there can be"};
  } catch (const std::bad_alloc&) {
    // The bytes may be valid.
    throw;
  } catch (const Error& e) {
    if (e.code() != ErrorCode::usage) throw;  // of the keys
    throw DecodeError{path + ": " + e.what()};
  } catch (const std::exception& e) {
    throw DecodeError{path + ": " + e.what()};
  } catch (...) {
    throw DecodeError{path + ": its deserialisation " + std::string{not_an_exception}};
  }
}

}  // namespace codec
}  // namespace stela
