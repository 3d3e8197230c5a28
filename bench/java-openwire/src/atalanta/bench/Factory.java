package atalanta.bench;

import javax.jms.ConnectionFactory;
import org.apache.activemq.ActiveMQConnectionFactory;

/** The connection factory of activemq-client. */
final class Factory {
    private Factory() {
    }

    /** {@code blocking}: every send waits for the broker; its own default is that durable ones do. */
    static ConnectionFactory of(String url, boolean durable, boolean blocking) {
        String more = "jms.useAsyncSend=" + !blocking + "&jms.alwaysSyncSend=" + blocking;
        return new ActiveMQConnectionFactory(url + "?" + more);
    }
}
