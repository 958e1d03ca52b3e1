//! What clients say to another replica than the one that waits for it, and are told by another one than holds their stream.

use caribou_core::ids::BootId;
use caribou_ports::peers::{ClientSays, ClientWord};
use caribou_proto::peer::v1;
use caribou_proto::peer::v1::hear_request::Says;

use super::malformed::Malformed;
use super::sessions::json;

/// The word, as a message to this life.
pub(in crate::peer) fn hear_request(to: &BootId, word: ClientWord) -> v1::HearRequest {
    let answer = |id, result, error| Says::Answer(v1::ClientAnswer { id, result, error });
    let says = match word.says {
        ClientSays::Result(id, result) => answer(id, Some(result.get().to_owned()), None),
        ClientSays::Error(id, error) => answer(id, None, Some(error.get().to_owned())),
        ClientSays::Cancels(id) => Says::Cancels(id),
        ClientSays::Told(message) => Says::Told(message),
    };
    v1::HearRequest { to_boot: to.to_string(), session: word.session, says: Some(says) }
}

/// The word in a message.
///
/// # Errors
/// It says nothing that we know.
pub(in crate::peer) fn client_word(request: v1::HearRequest) -> Result<ClientWord, Malformed> {
    let says = match request.says {
        Some(Says::Answer(v1::ClientAnswer { id, result: Some(result), .. })) => ClientSays::Result(id, json(result)?),
        Some(Says::Answer(v1::ClientAnswer { id, error: Some(error), .. })) => ClientSays::Error(id, json(error)?),
        Some(Says::Cancels(id)) => ClientSays::Cancels(id),
        Some(Says::Told(message)) => ClientSays::Told(message),
        Some(Says::Answer(_)) | None => return Err(Malformed("a client says something")),
    };
    Ok(ClientWord { session: request.session, says })
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn every_word_is_the_same_on_the_other_side() {
        let raw = || RawValue::from_string(r#"{"n":1.0}"#.to_owned()).unwrap();
        for says in [
            ClientSays::Result("\"a\"".to_owned(), raw()),
            ClientSays::Error("1".to_owned(), raw()),
            ClientSays::Cancels("2".to_owned()),
            ClientSays::Told(r#"{"n":1.0}"#.to_owned()),
        ] {
            let word = ClientWord { session: "s".to_owned(), says };
            let shown = format!("{word:?}");
            let told = client_word(hear_request(&BootId::new("b"), word)).unwrap();
            assert_eq!(format!("{told:?}"), shown);
        }
        assert!(client_word(v1::HearRequest::default()).is_err());
    }
}
