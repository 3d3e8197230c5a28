package atalanta.bench;

import jakarta.jms.ConnectionFactory;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;

/** The connection factory of artemis-jakarta-client. */
final class Factory {
    private Factory() {
    }

    /** Of connections that stay at one node. {@code blocking}: every send waits for the broker. */
    static ConnectionFactory of(String url, boolean durable, boolean blocking) {
        String more = "useTopologyForLoadBalancing=false&blockOnDurableSend=" + blocking
                + "&blockOnNonDurableSend=" + blocking
                + (durable && !blocking ? "&confirmationWindowSize=1048576" : "");
        return new ActiveMQConnectionFactory(url + "?" + more);
    }
}
